"""The messages of the keyed_state extension; ``migrate.model.catalog`` describes catalogs."""
