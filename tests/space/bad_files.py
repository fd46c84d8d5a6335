"""Invalid space files: the text, the line of the error, and the parts of the message."""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    text: str
    line: int
    rule: str
    value: str


def _one(fields: str) -> str:
    return f"good:\n  type: float\n  range: [0...1]\nbad:\n  {fields}\n"


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
ELSEWHERE = (
    "other: {type: int, range: [0...2], submodule: {0: {good: {type: int, range: [0...2]}}}}"
)

BAD_FILES: dict[str, Bad] = {
    "unknown type": Bad(_one("type: integer\n  range: [0...1]"), 5, "must be one of", "'integer'"),
    "type of Ray": Bad(
        _one("type: loguniform\n  range: [0...1]"), 5, "unknown type", "type: float, log: true"
    ),
    "type of Optuna": Bad(
        _one("type: categorical\n  range: [1]"), 5, "write type: choice", "'bad'"
    ),
    "type is a list": Bad(_one("type: [int]\n  range: [0...1]"), 5, "must be one of", "['int']"),
    "no type": Bad(_one("range: [0...1]"), 5, "needs a type", "'bad'"),
    "no range": Bad(_one("type: int"), 5, "needs a range", "'bad'"),
    "unknown key": Bad(_one("type: int\n  rnage: [0...1]"), 5, "unknown key", "'rnage'"),
    "empty choice": Bad(_one("type: choice\n  range: {}"), 6, "is empty", "'bad'"),
    "empty choice list": Bad(_one("type: choice\n  range: []"), 6, "is empty", "'bad'"),
    "empty number list": Bad(_one("type: int\n  range: []"), 6, "must be [low...high]", "[]"),
    "range of nothing": Bad(_one("type: int\n  range:"), 6, "must be [low...high]", "None"),
    "empty int": Bad(_one("type: int\n  range: [4...4]"), 6, "low < high must hold", "4...4"),
    "empty power": Bad(_one("type: powerint2\n  range: [4...4]"), 6, "low < high", "4...4"),
    "empty float": Bad(_one("type: float\n  range: [1...1]"), 6, "low < high", "1...1"),
    "reversed int": Bad(_one("type: int\n  range: [8...4]"), 6, "low < high must hold", "8...4"),
    "reversed float": Bad(_one("type: float\n  range: [1, 0.5]"), 6, "low < high", "1...0.5"),
    "words": Bad(_one("type: float\n  range: [few...many]"), 6, "a number is needed", "'few'"),
    "fraction": Bad(_one("type: int\n  range: [0.5...4]"), 6, "an integer is needed", "'0.5'"),
    "bool": Bad(_one("type: int\n  range: [false, true]"), 6, "an integer is needed", "False"),
    "null": Bad(_one("type: int\n  range: [0, null]"), 6, "an integer is needed", "None"),
    "three ends": Bad(_one("type: int\n  range: [1, 2, 3]"), 6, "[low...high]", "[1, 2, 3]"),
    "set for int": Bad(_one("type: int\n  range: {1, 2}"), 6, "must be [low...high]", "{1: None"),
    "infinite": Bad(_one("type: float\n  range: [0, .inf]"), 6, "must be finite", "inf"),
    "infinite dots": Bad(_one("type: float\n  range: [0...inf]"), 6, "within ±2^53", "'inf'"),
    "nan": Bad(_one("type: float\n  range: [.nan, 1]"), 6, "must be finite", "nan"),
    "nan dots": Bad(_one("type: float\n  range: [nan...1]"), 6, "within ±2^53", "'nan'"),
    "nan choice": Bad(_one("type: choice\n  range: {.nan, 1}"), 6, "must be finite", "nan"),
    "huge int": Bad(
        _one("type: int\n  range: [0...9007199254740994]"), 6, "within ±2^53", "9007199254740994"
    ),
    "huge int list": Bad(
        _one("type: int\n  range: [-9007199254740993, 1]"), 6, "within ±2^53", "-9007199254740993"
    ),
    "huge float": Bad(_one("type: float\n  range: [0, 1e30]"), 6, "within ±2^53", "1e+30"),
    "huge choice": Bad(_one("type: choice\n  range: {1e30}"), 6, "within ±2^53", "1e+30"),
    "huge power": Bad(_one("type: powerint2\n  range: [5...99]"), 6, "0...54", "5...99"),
    "huge default": Bad(
        _one(f"type: int\n  range: [1, 5]\n  default: 1{'0' * 400}"), 7, "within ±2^53", "1000"
    ),
    "unprintable number": Bad(
        _one(f"type: int\n  range: [0x{'f' * 4000}, 1]"), 6, "within ±2^53", "too long to print"
    ),
    "unparsable number": Bad(_one(f"type: int\n  range: [{'9' * 5000}, 1]"), 6, "not a", "'999"),
    "log of zero": Bad(_one("type: float\n  range: [0...1]\n  log: true"), 6, "0 < low", "got 0"),
    "log of negative": Bad(_one("type: int\n  range: [-3...5]\n  log: true"), 6, "0 < low", "-3"),
    "log of choice": Bad(_one("type: choice\n  range: {1}\n  log: true"), 7, "int and", "choice"),
    "log of power": Bad(
        _one("type: powerint2\n  range: [1...4]\n  log: true"), 7, "int and float", "powerint2"
    ),
    "log is a word": Bad(_one("type: int\n  range: [1...4]\n  log: on2"), 7, "true or", "'on2'"),
    "default outside": Bad(
        _one("type: int\n  range: [1...4]\n  default: 4"), 7, "default is outside", "got 4"
    ),
    "default is a list": Bad(
        _one("type: int\n  range: [1...4]\n  default: [1]"), 7, "single value", "'bad'"
    ),
    "key outside": Bad(
        _one("type: choice\n  range: {a, b}\n  submodule:\n    c:\n      x: {type: int}"),
        8,
        "outside the range",
        "'c'",
    ),
    "key of another type": Bad(
        _one("type: choice\n  range: {0, 1}\n  submodule:\n    '0':"), 8, "outside", "'0'"
    ),
    "key twice by value": Bad(
        _one("type: choice\n  range: {0, 1}\n  submodule:\n    1:\n    1.0:"), 9, "twice", "1"
    ),
    "duplicate name": Bad(_one("type: int\n  range: [0...2]") + "good: 1", 7, "twice", "'good'"),
    "duplicate key": Bad(_one("type: int\n  type: float"), 6, "twice", "'type'"),
    "duplicate choice": Bad(_one("type: choice\n  range: [a, b, a]"), 6, "twice", "'a'"),
    "duplicate in braces": Bad(_one("type: choice\n  range: {a, b, a}"), 6, "twice", "'a'"),
    "slash": Bad("a/b: {type: int, range: [0...2]}", 1, 'without "/" and "."', "'a/b'"),
    "dot": Bad("\na.b: {type: int, range: [0...2]}", 2, 'without "/" and "."', "'a.b'"),
    "empty name": Bad('"": {type: int, range: [0...2]}', 1, "a name must be text", "''"),
    "number as name": Bad("7: {type: int, range: [0...2]}", 1, "a name must be text", "7"),
    "list as name": Bad("? [a]\n: {type: int}", 1, "must be a single value", "['a']"),
    "top is a list": Bad("- a\n- b", 1, "must be a mapping", "['a', 'b']"),
    "top is a word": Bad("\nhello", 2, "must be a mapping", "'hello'"),
    "parameter is a number": Bad("a: 3", 1, "must be a mapping with a type", "3"),
    "submodule of a float": Bad(
        _one("type: float\n  range: [0...1]\n  submodule:\n    0: {x: 1}"), 8, "a float", "'bad'"
    ),
    "submodule is a list": Bad(
        _one("type: int\n  range: [0...2]\n  submodule: [a]"), 7, "must be a mapping", "'bad'"
    ),
    "submodule without keys": Bad(
        _one("type: choice\n  range: {u, v}\n  submodule:\n    x: {type: int, range: [0...2]}"),
        8,
        "needs a key per value",
        "'u'",
    ),
    "submodule mixed": Bad(
        _one("type: int\n  range: [0...2]\n  submodule:\n    0:\n    x: {type: int}"),
        8,
        "mix",
        "bad",
    ),
    "branch is a number": Bad(
        _one("type: int\n  range: [0...2]\n  submodule:\n    0: 5"), 8, "must be a mapping", "0"
    ),
    "nested repeats": Bad(
        "n: {type: int, range: [1...3], submodule: {m: {type: int, range: [1...3],\n"
        "  submodule: {x: {type: int, range: [0...2]}}}}}",
        2,
        "cannot be nested",
        "'m'",
    ),
    "negative count": Bad(
        "n: {type: int, range: [-1...3],\n submodule: {x: {type: int, range: [0...2]}}}",
        2,
        "0 <= count",
        "-1...3",
    ),
    "active twice": Bad(_one("type: int\n  range: [0...2]") + ELSEWHERE, 7, "twice", "'good'"),
    "above itself": Bad(
        "\na: {type: choice, range: {1}, submodule: {1: {a: {type: int, range: [0...2]}}}}",
        2,
        "stands above",
        "'a'",
    ),
    "not YAML": Bad("a: {type: int\nb: ]", 2, "is not YAML", "but got ':'"),
    "tabs": Bad("a:\n\ttype: int", 2, "is not YAML", "\\t"),
    "control character": Bad("a: 1\nb: \x01", 2, "is not YAML", "#x0001"),
    "two documents": Bad("a: 1\n---\nb: 1", 2, "is not YAML", "document"),
    "escape beyond Unicode": Bad('a: "\\UFFFFFFFF"', 1, "is not YAML", "too large"),
    "half a character": Bad('a: "\\uD800"', 1, "valid Unicode", "\\ud800"),
    "empty": Bad("", 1, "is empty", "at least one parameter"),
    "only comments": Bad("# nothing\n\n", 1, "is empty", "at least one parameter"),
    "empty mapping": Bad("{}", 1, "is empty", "at least one parameter"),
    "null document": Bad("~", 1, "must be a mapping", "None"),
    "exploding aliases": Bad(BOMB, 1, "expands to more than", "50000"),
    "cyclic alias": Bad("a: &a\n  type: choice\n  range: [*a]", 1, "contains itself", ""),
    "cyclic mapping": Bad("&a\nb: *a", 1, "contains itself", ""),
    "unknown alias": Bad("a: *nowhere", 1, "is not YAML", "nowhere"),
    "object tag": Bad(
        "a: !!python/object/apply:os.system ['true']", 1, "tags are not allowed", "os.system"
    ),
    "own tag": Bad("\na: !thing {type: int}", 2, "tags are not allowed", "!thing"),
    "set tag": Bad("a: {type: choice, range: !!set {x, y}}", 1, "tags are not allowed", "set"),
    "empty int tag": Bad(_one('type: int\n  range: [!!int "", 4]'), 6, "is not a value", "''"),
    "word as int": Bad(_one("type: int\n  range: [!!int x, 4]"), 6, "is not a value", "'x'"),
    "word as bool": Bad(_one("type: !!bool perhaps"), 5, "is not a value", "'perhaps'"),
    "nested deeply": Bad("[" * 1_000, 1, "nested", "deep"),
    "nested past the limit": Bad("{a: " * 70 + "1" + "}" * 70, 1, "nested deeper than", "60"),
    "more subspaces than print": Bad(
        "n: {type: int, range: [1...257], submodule: {\n"
        "  a: {type: int, range: [0...9007199254740992], submodule: {0: }},\n"
        "  b: {type: int, range: [0...9007199254740992], submodule: {0: }}}}",
        1,
        "subspaces",
        "2^10000",
    ),
    "dots in a choice": Bad(_one("type: choice\n  range: [4...8]"), 6, "is a choice", "'4...8'"),
    "list in a choice": Bad(_one("type: choice\n  range: [[1], 2]"), 6, "must be single", "[1]"),
    "pairs in a choice": Bad(_one("type: choice\n  range: {a: 1}"), 6, "not a: b", "'bad'"),
    "one word for a choice": Bad(_one("type: choice\n  range: a"), 6, "must be {a, b}", "'a'"),
    "too many repeats": Bad(
        "n: {type: int, range: [1...999],\n submodule: {x: {type: int, range: [0...2]}}}",
        2,
        "count <= 256",
        "1...999",
    ),
}
