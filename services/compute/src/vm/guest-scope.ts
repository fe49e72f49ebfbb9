import { existsSync, readFileSync } from 'node:fs';
import type { GroupLimits } from '../groups/control-group.ts';

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

/** Whether guests get scopes of systemd's. */
export const hasScopes = (): boolean =>
  existsSync(SYSTEMD_RUNS) && isService(readFileSync('/proc/self/cgroup', 'utf8'));

/** The most that systemd takes (systemd.resource-control(5)), and what a unit has that says nothing. */
const WEIGHT_MAX = 10_000;
const WEIGHT = 100;

/** What holds a scope to its share (systemd.resource-control(5)). Pure. */
function limitProperties({ cpus, weight = cpus, memoryBytes, tasks }: GroupLimits): string[] {
  const parts = Math.min(WEIGHT_MAX, Math.round(WEIGHT * weight));
  return [
    `CPUQuota=${Math.round(cpus * 100)}%`,
    `CPUWeight=${parts}`,
    `IOWeight=${parts}`,
    `MemoryMax=${memoryBytes}`,
    `TasksMax=${tasks}`,
  ].map((property) => `--property=${property}`);
}

/**
 * What a guest's QEMU is started by: systemd ends all processes of a service that stops, so a guest leaves the service for a
 * scope of its own. Pure.
 */
export function scopeCommand(description: string, limits: GroupLimits): string[] {
  const options = [
    '--scope',
    '--quiet',
    '--collect',
    `--slice=${GUESTS_SLICE}`,
    `--property=Before=${GUESTS_UNIT}`,
    ...limitProperties(limits),
    `--description=${description}`,
  ];
  return ['systemd-run', ...options, '--'];
}
