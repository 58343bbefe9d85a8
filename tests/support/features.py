"""The features of the program: `tools/without` runs the tests without one."""

from smartfeeds.features import FEATURES

FEATURE_NAMES = frozenset(feature.name for feature in FEATURES)
