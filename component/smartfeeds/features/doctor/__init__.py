"""`smartfeeds doctor`: what is wrong, and what to do."""

from smartfeeds.app.feature import Feature

DOCTOR = Feature("doctor", commands={"doctor": "smartfeeds.features.doctor.doctor"})
