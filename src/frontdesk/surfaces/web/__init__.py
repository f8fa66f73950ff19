"""The pages: see what every agent is doing, and act on it; rendered here, and they work without JavaScript."""
