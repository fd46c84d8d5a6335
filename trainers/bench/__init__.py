"""How fast the trainer is: networks of the space come in, images per second come out."""
