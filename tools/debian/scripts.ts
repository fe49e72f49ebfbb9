import { cacheOf, dataOf, SETTINGS, SHARED, unitOf } from './layout.ts';

/** Shell scripts that dpkg runs (deb-postinst(5) and its neighbours). They ask nothing, and start nothing that did not run. */
export interface Scripts {
  readonly postinst: string;
  readonly prerm: string;
  readonly postrm: string;
}

interface Parts {
  /** In the order in which they are started again. */
  readonly roles: readonly string[];
  readonly users?: string;
  /** Units that end the compute node's guests, in this order: they outlive its process, and not the package. */
  readonly guests?: readonly string[];
}

const IF_SYSTEMD = 'if [ -d /run/systemd/system ]; then';

/** The gateway hands its connections to the new version; where it cannot, it is restarted as the others are. */
const again = (role: string) =>
  role === 'gateway'
    ? `      if systemctl --quiet is-active ${unitOf(role)}; then
        systemctl reload ${unitOf(role)} || systemctl try-restart ${unitOf(role)} || true
      fi`
    : `      systemctl try-restart ${unitOf(role)} || true`;

export function renderScripts({ roles, users, guests }: Parts): Scripts {
  const units = roles.map(unitOf).join(' ');
  const directories = roles.flatMap((role) => [dataOf(role), cacheOf(role)]).join(' ');
  return {
    postinst: `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  # A command of root's that comes before the first daemon would make them for root alone.
  install --directory --mode 0755 ${SHARED.join(' ')}
${users === undefined ? '' : `  systemd-sysusers ${users}\n`}  ${IF_SYSTEMD}
    systemctl daemon-reload
    # An upgrade: what runs goes on as the new version.
    if [ -n "$2" ]; then
${roles.map(again).join('\n')}
    fi
  fi
fi
`,
    prerm: `#!/bin/sh
set -e
if [ "$1" = remove ]; then
  ${IF_SYSTEMD}
    systemctl disable --now ${units} || true
${(guests ?? []).map((unit) => `    systemctl stop ${unit} || true\n`).join('')}  fi
fi
`,
    postrm: `#!/bin/sh
set -e
${IF_SYSTEMD}
  systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
  rm -rf ${directories}
  rmdir --ignore-fail-on-non-empty ${SHARED.join(' ')} ${SETTINGS} 2>/dev/null || true
fi
`,
  };
}
