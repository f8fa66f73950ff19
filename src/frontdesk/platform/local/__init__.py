"""The stand-in for the platform: what its servers answer, in which state, and who asked."""
