"""The messages of the cutover extension; ``migrate.model.catalog`` describes catalogs."""
