"""Log-ins to Amazon MSK with IAM: tokens for librdkafka's OAUTHBEARER from AWS's own signer.

Java clients configure the mechanism AWS_MSK_IAM, or OAUTHBEARER with a callback handler of
aws-msk-iam-auth; both are the same for the broker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrate.kafka.config.parse_jaas import LoginModule
from migrate.kafka.config.properties import ConfigError, TokenCallback
from migrate.model.wording import install_command

AWS_MSK_IAM = "AWS_MSK_IAM"
CALLBACK_HANDLERS = frozenset(
    {
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    }
)

# As in b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com:9098, and boot-….kafka-serverless.….
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")

# The default name of an assumed role's session in AWS's audit trail.
_SESSION_NAME = "flink-offset-migrate"


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """The credentials that sign; without profile and role, those of the AWS SDK's default chain."""

    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = _SESSION_NAME


def aws_login(module: LoginModule) -> AwsLogin | None:
    """Return the options of an IAMLoginModule; None for any other module.

    Raises:
        ConfigError: an option that the signer has no match for.
    """
    if module.name != "IAMLoginModule":
        return None
    options = dict(module.options)
    login = AwsLogin(
        options.pop("awsProfileName", None),
        options.pop("awsRoleArn", None),
        options.pop("awsRoleSessionName", _SESSION_NAME),
    )
    options.pop("awsDebugCreds", None)  # Java's logs
    for option in sorted(options):
        raise ConfigError(
            f"sasl.jaas.config: IAMLoginModule option {option} has no match in AWS's signer for "
            "Python; say it in the environment or in the AWS profile"
        )
    return login


def token_callback(
    bootstrap_servers: str, login: AwsLogin | None, aws_region: str | None
) -> TokenCallback:
    """Return the callback from which librdkafka gets a token when it connects.

    Args:
        bootstrap_servers: the addresses; MSK's host names contain the region.
        login: the credentials that sign, or None for the default.
        aws_region: the region for other host names.

    Raises:
        ConfigError: the signer is not installed, has no credentials, or the region is not known.
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError as error:
        raise ConfigError(f"{AWS_MSK_IAM} needs AWS's signer: {install_command('msk')}") from error
    host = _HOST.search(bootstrap_servers)
    region = host[1] if host else aws_region
    if not region:
        raise ConfigError(
            f"{AWS_MSK_IAM}: the address does not tell the AWS region; set AWS_REGION"
        )
    aws = login or AwsLogin()

    def token(_: str) -> tuple[str, float]:
        try:
            if aws.role_arn is not None:
                signed, expiry_ms = Signer.generate_auth_token_from_role_arn(
                    region, aws.role_arn, aws.role_session_name
                )
            elif aws.profile is not None:
                signed, expiry_ms = Signer.generate_auth_token_from_profile(region, aws.profile)
            else:
                signed, expiry_ms = Signer.generate_auth_token(region)
        # The signer and boto3 have no error in common; without credentials at all it is an
        # AttributeError.
        except Exception as error:
            kind = type(error).__name__
            raise ConfigError(
                f"{AWS_MSK_IAM}: AWS's signer found no usable credentials ({kind})"
            ) from error
        return signed, expiry_ms / 1000

    # A client without a token fails only after ten seconds, and without the reason.
    token("")
    return token
