"""From the words of a turn to those of the protocol, and back."""
