"""Tasks that are looked for."""
