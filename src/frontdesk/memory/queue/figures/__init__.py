"""How the work goes."""
