"""The entry point of the program that `make program` builds."""

import os
import sys

# PyInstaller's bootloader sets LD_LIBRARY_PATH to the program's own libraries, which the commands
# that `cut-over` runs must not load. Without the other variables, a worker process starts like a
# new program.
library_path = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if library_path is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = library_path
for name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[name]

# The OpenSSL of the program looks for certificate authorities at the path of the machine where it
# was built. These are the paths of Debian, Red Hat and SUSE, and that of certifi's list.
AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    f"{sys._MEIPASS}/certifi/cacert.pem",
)
if "SSL_CERT_FILE" not in os.environ and "SSL_CERT_DIR" not in os.environ:
    os.environ["SSL_CERT_FILE"] = next(filter(os.path.exists, AUTHORITIES))

if sys.argv[1:] == ["--worker"]:  # migrate.extensions.fleet.workers starts it
    from migrate.extensions.fleet.workers import serve

    serve()
else:
    from migrate.cli import main

    main()
