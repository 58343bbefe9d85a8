"""The application: features, settings, and the parts of the service in their life."""
