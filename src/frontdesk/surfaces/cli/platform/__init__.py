"""The commands around a ToolingManifest.json."""
