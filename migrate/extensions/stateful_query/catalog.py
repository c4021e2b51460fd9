"""The messages of the stateful_query extension; ``migrate.model.catalog`` describes catalogs."""
