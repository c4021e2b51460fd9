"""What the other rooms get: properties for a confluent-kafka client."""

from __future__ import annotations

from collections.abc import Callable, Mapping

# Takes `sasl.oauthbearer.config`; gives a token and when it expires, in seconds since the epoch.
TokenCallback = Callable[[str], tuple[str, float]]

# By librdkafka's names. All are text, but for `oauth_cb`, which AWS_MSK_IAM needs.
KafkaConfig = Mapping[str, str | TokenCallback]
