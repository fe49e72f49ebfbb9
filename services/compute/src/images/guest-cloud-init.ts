/** Where the program that runs cloud-init's stages is inside a guest. */
export const STAGES = '/usr/lib/skerry/cloud-init-stages';
const STAGE_DIRECTORY = '/run/skerry';

// Only NoCloud, and only the modules that act on what the seed of a compute node can carry: looking for other clouds and
// importing some forty modules costs seconds under software emulation.
export const cloudConfig = (distro: string) => `datasource_list: [NoCloud]
datasource:
  NoCloud:
    fs_label: cidata
users: []
disable_root: false
ssh_pwauth: false
ssh_deletekeys: true
ssh_genkeytypes: [ed25519]
preserve_hostname: false
resize_rootfs: true
allow_public_ssh_keys: true
no_ssh_fingerprints: true
cloud_init_modules: [bootcmd, write-files, resizefs, set_hostname, update_hostname, users-groups, ssh]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user]
system_info:
  distro: ${distro}
  network:
    renderers: [networkd]
    activators: [networkd]
  paths:
    cloud_dir: /var/lib/cloud/
    templates_dir: /etc/cloud/templates/
  ssh_svcname: ssh
`;

// One log file at level INFO, and no process that copies output.
export const CLOUD_LOGGING = `_log:
  - &log_base |
    [loggers]
    keys=root,cloudinit
    [handlers]
    keys=file
    [formatters]
    keys=simple
    [logger_root]
    level=INFO
    handlers=file
    [logger_cloudinit]
    level=INFO
    qualname=cloudinit
    handlers=
    propagate=1
    [formatter_simple]
    format=%(asctime)s - %(filename)s[%(levelname)s]: %(message)s
  - &log_file |
    [handler_file]
    class=FileHandler
    level=INFO
    formatter=simple
    args=('/var/log/cloud-init.log', 'a', 'UTF-8')
log_cfgs:
  - [*log_base, *log_file]
output: {all: '>> /var/log/cloud-init-output.log'}
`;

// cloud-init starts Python four times, and imports itself each time. Here one process runs the same four stages;
// the standard units stay, so that everything ordered after them works, and each waits for its stage's result.
export const CLOUD_INIT_STAGES = `#!/usr/bin/python3
import os
import socket
import sys
import threading

os.environ.setdefault('TZ', ':/etc/localtime')
# All are optional for their users, and slow to import: validation and templates in a seed that the compute node wrote
# itself, and guessing encodings.
for name in ('jsonschema', 'jinja2', 'charset_normalizer'):
    sys.modules[name] = None
# The same YAML, read by libyaml: ten times as fast.
import yaml
yaml.SafeLoader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
from cloudinit.cmd import main

DIRECTORY = '${STAGE_DIRECTORY}'
LATER = (('init', ['init']), ('config', ['modules', '--mode=config']), ('final', ['modules', '--mode=final']))


def notify(text):
    address = os.environ.pop('NOTIFY_SOCKET', '')
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect('\\0' + address[1:] if address.startswith('@') else address)
            channel.sendall(text.encode())


def stage(arguments):
    try:
        return 1 if main.main(['cloud-init', *arguments]) else 0
    except SystemExit as error:
        return 1 if error.code else 0
    except Exception as error:
        print('cloud-init', *arguments, 'failed:', error, file=sys.stderr)
        return 1


def tell(name, result):
    # Opening a pipe waits for its reader, the unit of that stage, which may start much later.
    with open(os.path.join(DIRECTORY, 'stage-' + name), 'w') as pipe:
        pipe.write('%d\\n' % result)


os.makedirs('/run/cloud-init', exist_ok=True)
os.makedirs(DIRECTORY, exist_ok=True)
open('/run/cloud-init/enabled', 'w').close()
for name, _ in LATER:
    os.mkfifo(os.path.join(DIRECTORY, 'stage-' + name), 0o600)
failed = stage(['init', '--local'])
notify('READY=1')
for name, arguments in LATER:
    result = stage(arguments)
    failed = failed or result
    threading.Thread(target=tell, args=(name, result)).start()
sys.exit(failed)
`;

export const STAGES_UNIT = `[Service]
Type=notify
NotifyAccess=main
ExecStart=
ExecStart=${STAGES}
StandardOutput=journal
`;

export const stageUnit = (stage: string) => `[Service]
ExecStart=
ExecStart=/bin/sh -c 'read -r r < ${STAGE_DIRECTORY}/stage-${stage}; exit "$r"'
StandardOutput=journal
`;
