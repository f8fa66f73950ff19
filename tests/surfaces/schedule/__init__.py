"""Tests of the scheduler's doors."""
