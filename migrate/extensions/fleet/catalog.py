"""The messages of the fleet extension; ``migrate.model.catalog`` describes catalogs."""
