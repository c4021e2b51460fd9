"""IAM authentication for Amazon MSK: the AWS signer creates tokens for OAUTHBEARER in librdkafka.

A Java client uses either the AWS_MSK_IAM mechanism, or OAUTHBEARER with a callback handler from
aws-msk-iam-auth. The broker accepts either, with the same credentials.
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

# The end of an MSK host name, which contains the region. Examples of host names:
# b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com:9098, and boot-….kafka-serverless.….
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")

# The default session name of an assumed role; AWS CloudTrail shows it.
_SESSION_NAME = "flink-offset-migrate"


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """The credentials for signing tokens.

    If a role is set, the profile is not used. If neither a role nor a profile is set, the default
    chain of the AWS SDK finds the credentials.
    """

    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = _SESSION_NAME


def aws_login(module: LoginModule) -> AwsLogin | None:
    """Return the credentials in the options of an IAMLoginModule; None for any other module.

    Raises:
        ConfigError: the module has an option that the signer does not support.
    """
    if module.name != "IAMLoginModule":
        return None
    options = dict(module.options)
    login = AwsLogin(
        options.pop("awsProfileName", None),
        options.pop("awsRoleArn", None),
        options.pop("awsRoleSessionName", _SESSION_NAME),
    )
    options.pop("awsDebugCreds", None)  # affects only the logs of the Java client
    for option in sorted(options):
        raise ConfigError(
            "sasl.jaas.config: AWS's signer for Python has no equivalent of the IAMLoginModule "
            f"option {option}; set it in the environment or in the AWS profile"
        )
    return login


def token_callback(
    bootstrap_servers: str, login: AwsLogin | None, aws_region: str | None
) -> TokenCallback:
    """Return the callback that librdkafka calls for a token when it connects.

    ``aws_region`` is used only if the brokers' host names do not contain the region.

    Raises:
        ConfigError: the signer is missing or cannot find credentials, or the region cannot be
            determined.
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError as error:
        install = install_command("msk")
        raise ConfigError(f"{AWS_MSK_IAM} requires AWS's signer: {install}") from error
    host = _HOST.search(bootstrap_servers)
    region = host[1] if host else aws_region
    if not region:
        raise ConfigError(f"{AWS_MSK_IAM}: the AWS region is not in the address; set AWS_REGION")
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
        # Errors from the signer and from boto3 have no common base class. If there are no
        # credentials, the signer raises AttributeError.
        except Exception as error:
            kind = type(error).__name__
            raise ConfigError(
                f"{AWS_MSK_IAM}: AWS's signer found no usable credentials ({kind})"
            ) from error
        return signed, expiry_ms / 1000

    # Request a first token now, so that errors are reported immediately. librdkafka would report a
    # failure only after ten seconds, and without a reason.
    token("")
    return token
