"""Outgoing HTTP: the guarded client, address checks and body limits."""
