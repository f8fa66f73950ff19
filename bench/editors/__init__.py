"""What editors notice: what a turn through the protocol costs over the same turn without it, and what a start takes."""
