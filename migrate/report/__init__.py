"""Results as text: tables, JSON, CSV, and HTML pages."""
