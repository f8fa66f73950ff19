"""When a schedule fires: pure rules over UTC microseconds, with no clock and no database."""
