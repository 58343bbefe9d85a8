"""Outgoing HTTP: the guarded client, address checks, body limits and limits per host."""
