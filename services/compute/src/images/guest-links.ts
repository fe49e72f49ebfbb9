export interface GuestLink {
  path: string;
  target: string;
}

/** Units that do nothing useful in a guest without consoles, TPM, encrypted disks or unattended upgrades. */
const MASKED_UNITS: readonly string[] = [
  'apt-daily.timer',
  'apt-daily.service',
  'apt-daily-upgrade.timer',
  'apt-daily-upgrade.service',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'cloud-init-hotplugd.socket',
  'cloud-init-hotplugd.service',
  'dev-hugepages.mount',
  'dev-mqueue.mount',
  'getty@tty1.service',
  'getty.target',
  'serial-getty@ttyS0.service',
  'kmod-static-nodes.service',
  'proc-sys-fs-binfmt_misc.automount',
  'sys-fs-fuse-connections.mount',
  'sys-kernel-config.mount',
  'sys-kernel-debug.mount',
  'sys-kernel-tracing.mount',
  'systemd-ask-password-console.path',
  'systemd-ask-password-wall.path',
  'systemd-binfmt.service',
  'systemd-firstboot.service',
  'systemd-initctl.socket',
  'systemd-fsckd.socket',
  'systemd-journald-audit.socket',
  'systemd-modules-load.service',
  'systemd-machine-id-commit.service',
  'systemd-pcrphase.service',
  'systemd-pcrphase-sysinit.service',
  'systemd-pstore.service',
  'systemd-repart.service',
  'systemd-sysusers.service',
  'systemd-update-utmp.service',
  'systemd-update-utmp-runlevel.service',
];

/** Generators look for things this guest cannot have; each is a process at every start. */
const MASKED_GENERATORS: readonly string[] = [
  'cloud-init-generator',
  'systemd-cryptsetup-generator',
  'systemd-debug-generator',
  'systemd-getty-generator',
  'systemd-gpt-auto-generator',
  'systemd-hibernate-resume-generator',
  'systemd-integritysetup-generator',
  'systemd-rc-local-generator',
  'systemd-run-generator',
  'systemd-system-update-generator',
  'systemd-veritysetup-generator',
];

/** sshd runs from the start, with the socket that is made for it: a guest is up when sshd could answer, and not when somebody first knocks. */
const UBUNTU_LINKS: readonly GuestLink[] = [
  {
    path: '/etc/systemd/system/multi-user.target.wants/ssh.service',
    target: '/usr/lib/systemd/system/ssh.service',
  },
];

export function guestLinks(distro = 'debian'): GuestLink[] {
  return [
    ...(distro === 'ubuntu' ? UBUNTU_LINKS : []),
    ...MASKED_UNITS.map((unit) => ({ path: `/etc/systemd/system/${unit}`, target: '/dev/null' })),
    ...MASKED_GENERATORS.map((name) => ({
      path: `/etc/systemd/system-generators/${name}`,
      target: '/dev/null',
    })),
    {
      path: '/etc/systemd/system/multi-user.target.wants/cloud-init.target',
      target: '/lib/systemd/system/cloud-init.target',
    },
    {
      path: '/etc/systemd/system/multi-user.target.wants/skerry-ready.service',
      target: '/etc/systemd/system/skerry-ready.service',
    },
    {
      path: '/etc/systemd/system/multi-user.target.wants/systemd-networkd.service',
      target: '/lib/systemd/system/systemd-networkd.service',
    },
    {
      path: '/etc/systemd/system/network-online.target.wants/systemd-networkd-wait-online.service',
      target: '/lib/systemd/system/systemd-networkd-wait-online.service',
    },
  ];
}
