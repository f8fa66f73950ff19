"""The tests: unit/ stores/ surfaces/ e2e/ faults/, and requirements.py which ties them to what was asked for."""
