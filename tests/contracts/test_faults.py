"""Tests of the contracts: each fails for one fault, and only for that."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nasbo.testing import (
    AcquisitionContract,
    LongMethodContract,
    MethodContract,
    SurrogateContract,
)

pytest_plugins = ["pytester"]

FAULTS: dict[type, dict[str, list[str]]] = {
    MethodContract: {
        "SuggestsTaken": [
            "test_configs_are_valid_new_and_the_methods_own",
            "test_batches_have_no_duplicates_and_no_fallback",
            "test_running_configs_are_not_suggested_again",
            "test_discrete_spaces_of_which_much_is_known_hardly_need_the_fallback",
        ],
        "Invalid": ["test_configs_are_valid_new_and_the_methods_own"],
        "IgnoresTheSeed": [
            "test_same_seed_same_suggestions",
            "test_another_process_suggests_the_same",
            "test_stopping_and_resuming_changes_nothing",
        ],
        "UsesTheGlobalGenerator": ["test_same_seed_same_suggestions"],
        "DependsOnTheProcess": ["test_another_process_suggests_the_same"],
        "KeepsState": ["test_stopping_and_resuming_changes_nothing"],
        "SuggestsTwins": ["test_batches_have_no_duplicates_and_no_fallback"],
        "IgnoresRunning": ["test_running_configs_are_not_suggested_again"],
        "StaysAtTheBest": ["test_discrete_spaces_of_which_much_is_known_hardly_need_the_fallback"],
        "SkipsTheDesign": ["test_histories_of_nothing_and_of_one_result"],
        "DividesByTheSpread": ["test_constant_scores_are_survived"],
        "NeedsEveryResult": ["test_failures_are_survived"],
        "IgnoresResults": ["test_results_decide_what_comes_next"],
        "IgnoresLimits": ["test_limits_are_kept", "test_failing_regions_are_left_alone"],
    },
    LongMethodContract: {
        "FailsOften": ["test_long_searches_in_full"],
        "StopsEarly": ["test_finite_spaces_are_used_up"],
    },
    SurrogateContract: {
        "HalvesTheMean": ["test_it_comes_close_to_what_it_has_seen"],
        "IsSureEverywhere": [
            "test_it_is_unsure_elsewhere",
            "test_pending_configs_keep_the_mean_and_cut_the_variance",
        ],
        "HasNoGradient": ["test_gradient_is_the_derivative"],
        "HasAnotherJoint": ["test_joint_posterior_agrees_with_the_marginals"],
        "CentresTheBatch": ["test_a_batch_is_as_its_rows_one_by_one"],
        "DependsOnTheOrder": ["test_order_of_rows_does_not_matter"],
        "ForgetsToNormalise": ["test_correlations_are_those_of_the_prior"],
        "IgnoresPending": [
            "test_pending_configs_keep_the_mean_and_cut_the_variance",
            "test_pending_configs_of_subspaces_never_seen",
        ],
        "IsChangedByPending": ["test_pending_configs_keep_the_mean_and_cut_the_variance"],
        "ComputesInFloat32": ["test_spaces_of_every_shape"],
        "TakesAnyScore": ["test_unusable_scores_are_a_fit_error"],
        "DividesByTheSpread": ["test_constant_scores_and_repeated_rows_are_no_trouble"],
        "DependsOnTheProcess": ["test_another_process_fits_the_same"],
        "DrawsFromTheGlobalGenerator": ["test_global_state_is_of_no_account_and_stays"],
    },
    AcquisitionContract: {
        "PrefersTheWorst": ["test_a_larger_mean_promises_more"],
        "HalvesTheGradient": ["test_gradient_is_that_of_finite_differences"],
        "RanksTheBatch": ["test_a_batch_is_scored_as_its_rows_one_by_one"],
        "Underflows": ["test_scores_are_finite_far_below_the_best"],
    },
}
SUBJECTS = {
    MethodContract: ("method", "faulty_methods", "Sound"),
    LongMethodContract: ("method", "faulty_methods", "Sound"),
    SurrogateContract: ("surrogate", "faulty_models", "OneHotGP"),
    AcquisitionContract: ("acquisition", "faulty_models", "UCB"),
}
"""What an author sets, the module of the classes, and one of them without a fault."""
AUTHOR = """
class Test{name}({contract}):
    {subject} = {name}
"""


def contract_tests(contract: type) -> set[str]:
    return {name for name in dir(contract) if name.startswith("test_")}


def failures(pytester: pytest.Pytester, contract: type, nodes: dict[str, list[str]]) -> set[str]:
    """The failing tests, ``Class::test``, when an author tests some classes.

    In a subprocess: pytest would unload modules of torch, which can be imported only once.
    """
    subject, module, _ = SUBJECTS[contract]
    shutil.copy(Path(__file__).with_name(f"{module}.py"), pytester.path)
    text = (
        f"from nasbo.testing import {contract.__name__}\nfrom {module} import {', '.join(nodes)}\n"
    )
    for name in nodes:
        text += AUTHOR.format(name=name, contract=contract.__name__, subject=subject)
    file = pytester.makepyfile(text)
    ids = [f"{file.name}::Test{name}::{test}" for name, tests in nodes.items() for test in tests]
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "--junitxml=results.xml", *ids)
    cases = list(ElementTree.parse(pytester.path / "results.xml").iter("testcase"))
    assert {named(case) for case in cases} == {node.partition("::")[2] for node in ids}
    assert {child.tag for case in cases for child in case} <= {"failure"}
    return {named(case) for case in cases if case.find("failure") is not None}


def test_spaces_of_an_author_are_tried(pytester: pytest.Pytester) -> None:
    """A method that fails only in the author's space is found, but not with ``SPACES`` alone."""
    text = """
        from nasbo.methods.random import RandomSearch
        from nasbo.testing import SPACES, MethodContract

        class Picky(RandomSearch):
            def propose(self, task):
                return [] if "own" in self.space.names else super().propose(task)

        class TestShipped(MethodContract):
            method, is_blind = Picky, True

        class TestOwn(MethodContract):
            method, is_blind, spaces = Picky, True, SPACES | {"own": {"own": SPACES["flat"]["x"]}}
    """
    pytester.makepyfile(text)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "own or Shipped", "-rf")
    failed = [line for line in done.outlines if line.startswith("FAILED")]
    assert len(failed) == 3, done.outlines
    assert all("::TestOwn::" in line and "[own]" in line for line in failed)


def named(case: ElementTree.Element) -> str:
    """``Class::test`` without its parameters."""
    return f"{case.attrib['classname'].rpartition('.')[2]}::{case.attrib['name'].partition('[')[0]}"


@pytest.mark.parametrize("contract", FAULTS, ids=lambda contract: contract.__name__)
def test_faults_are_found_and_only_faults(pytester: pytest.Pytester, contract: type) -> None:
    faults = FAULTS[contract]
    wanted = {f"Test{fault}::{test}" for fault, tests in faults.items() for test in tests}
    sound = {SUBJECTS[contract][2]: sorted(contract_tests(contract))}
    assert failures(pytester, contract, faults | sound) == wanted


@pytest.mark.parametrize("contract", FAULTS, ids=lambda contract: contract.__name__)
def test_every_test_of_a_contract_finds_a_fault(contract: type) -> None:
    found = {test for tests in FAULTS[contract].values() for test in tests}
    assert found == contract_tests(contract)
