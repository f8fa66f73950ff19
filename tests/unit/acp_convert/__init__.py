"""Between the words of a turn and those of the editors' protocol."""
