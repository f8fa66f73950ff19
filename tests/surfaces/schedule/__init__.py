"""Tests of the scheduler's endpoints."""
