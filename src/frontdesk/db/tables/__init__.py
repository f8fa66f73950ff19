"""The database: one schema for SQLite and PostgreSQL, the engine, and the migrations."""
