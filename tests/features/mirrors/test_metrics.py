"""The metrics of mirrors."""

from support.metrics import metric_names


def test_promised_metrics_exist() -> None:
    """[OPS-083]"""
    assert {"smartfeeds_mirror_lag_seconds", "smartfeeds_mirror_in_step"} <= set(metric_names())
