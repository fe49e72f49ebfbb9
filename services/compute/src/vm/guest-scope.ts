import { existsSync, readFileSync } from 'node:fs';

/** Where systemd shows guests. `systemctl stop` of it ends them all. */
export const GUESTS_SLICE = 'skerry-guests.slice';

/** It presses power buttons when the computer goes down: before systemd ends the scopes, since it comes after them. */
export const GUESTS_UNIT = 'skerry-guests.service';

/** sd_booted(3) */
const SYSTEMD_RUNS = '/run/systemd/system';

/** Whether systemd runs this process as a service, by /proc/self/cgroup (cgroups(7)). Pure. */
export function isService(cgroup: string): boolean {
  return cgroup
    .split('\n')
    .some((line) => /^(?:0:|[0-9]+:name=systemd):.*\/[^/]+\.service(?:\/|$)/.test(line));
}

/**
 * What a guest's QEMU is started by: systemd ends all processes of a service that stops, so a guest leaves the service for a
 * scope of its own.
 */
export function scopeCommand(description: string): string[] {
  if (!existsSync(SYSTEMD_RUNS) || !isService(readFileSync('/proc/self/cgroup', 'utf8'))) return [];
  const options = [
    '--scope',
    '--quiet',
    '--collect',
    `--slice=${GUESTS_SLICE}`,
    `--property=Before=${GUESTS_UNIT}`,
    `--description=${description}`,
  ];
  return ['systemd-run', ...options, '--'];
}
