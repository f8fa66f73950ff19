"""The tests: unit/ stores/ interfaces/ e2e/ faults/ and more; requirements.py ties them to what was asked for."""
