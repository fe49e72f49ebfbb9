import {
  CLOUD_INIT_STAGES,
  CLOUD_LOGGING,
  cloudConfig,
  STAGES,
  STAGES_UNIT,
  stageUnit,
} from './guest-cloud-init.ts';

/**
 * What is laid over the Debian packages to make a guest of this network: files, links and units that are switched off.
 * Everything here is about two things: the guest tells when it is up, and it boots quickly even under software emulation,
 * where starting one process costs some tens of milliseconds.
 */

export interface GuestFile {
  /** Absolute path inside the guest. */
  path: string;
  text: string;
  permissions?: number;
}

/** Name of the virtio-serial port that a guest holds open from the moment its sshd answers. */
export const READY_PORT = 'org.skerry.ready';

/** `four-units`: before 24.3, with a unit and a process for each stage. `one-process`: since then, on its own. */
export type CloudInitKind = 'four-units' | 'one-process';

export function guestFiles(cloudInit: CloudInitKind = 'four-units', distro = 'debian'): GuestFile[] {
  // The unit after which the seed's keys and names are in place.
  const seeded = cloudInit === 'four-units' ? 'cloud-init.service' : 'cloud-init-network.service';
  return [
    { path: '/etc/cloud/cloud.cfg', text: cloudConfig(distro) },
    { path: '/etc/cloud/cloud.cfg.d/05_logging.cfg', text: CLOUD_LOGGING },
    ...(cloudInit === 'four-units' ? stageFiles() : []),
    { path: '/etc/systemd/system/skerry-ready.service', text: readyUnit(seeded) },
    { path: '/etc/systemd/system/ssh.service.d/50-skerry.conf', text: sshUnit(seeded) },
    { path: '/etc/ssh/sshd_config.d/50-skerry.conf', text: SSHD_CONFIG },
    { path: '/etc/sysctl.d/50-skerry.conf', text: SYSCTL },
    { path: '/etc/systemd/system/systemd-udev-trigger.service.d/50-skerry.conf', text: UDEV_TRIGGER_UNIT },
    { path: '/etc/systemd/network/10-cloud-init-eth0.network.d/50-skerry.conf', text: NETWORK_LINK },
    // The initrd mounts the root file system, writable; nothing else is mounted from a table.
    { path: '/etc/fstab', text: '' },
    { path: '/etc/hostname', text: 'localhost\n' },
    { path: '/etc/machine-id', text: '' },
  ];
}

/** One process for the stages that older versions start four for. */
function stageFiles(): GuestFile[] {
  return [
    { path: STAGES, text: CLOUD_INIT_STAGES, permissions: 0o755 },
    { path: '/etc/systemd/system/cloud-init-local.service.d/50-skerry.conf', text: STAGES_UNIT },
    ...['init', 'config', 'final'].map((stage) => ({
      path: `/etc/systemd/system/cloud-${stage}.service.d/50-skerry.conf`,
      text: stageUnit(stage),
    })),
  ];
}

// Holding the port open is the message: the host is told of it at once, can ask for it at any later time (so a restarted
// compute node knows too), and a restart of the guest closes it.
const readyUnit = (seeded: string) => `[Unit]
Description=Tell the compute node that this guest is up
After=ssh.service ${seeded} systemd-user-sessions.service
Wants=ssh.service

[Service]
ExecStart=/bin/sh -c 'exec 3<>/dev/virtio-ports/${READY_PORT}; exec sleep infinity'
Restart=on-failure
RestartSec=1

[Install]
WantedBy=multi-user.target
`;

const sshUnit = (seeded: string) => `[Unit]
After=${seeded}

[Service]
ExecStartPre=
`;

const SSHD_CONFIG = `PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
`;

// The devices of this machine are known beforehand. Announcing the hundred others (terminals, memory blocks, processors) to
// udev costs seconds under software emulation.
const UDEV_TRIGGER_UNIT = `[Service]
ExecStart=
ExecStart=-udevadm trigger --type=devices --action=add --subsystem-match=block --subsystem-match=net --subsystem-match=input --subsystem-match=virtio-ports --subsystem-match=rtc
`;

// Addresses are static; without this, waiting for a router's advertisement delays "the network is up" by twelve seconds.
const NETWORK_LINK = `[Network]
IPv6AcceptRA=no
`;

// The link to the host is a point-to-point one with addresses the host chose: duplicate detection would only cost a second.
const SYSCTL = `net.ipv6.conf.default.accept_dad = 0
net.ipv6.conf.all.accept_dad = 0
`;
