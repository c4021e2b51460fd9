"""What the tool says: inspections and plans as tables, JSON and CSV."""
