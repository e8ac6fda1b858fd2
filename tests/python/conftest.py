"""Tests leave the cache of the user who runs them alone, and measure no hits of earlier runs."""

import os

os.environ["FUSEBOX_CACHE_BYTES"] = "0"
