import { computeService } from '@skerry/compute';
import { coreService } from '@skerry/core';
import { ipfsPeerService } from '@skerry/core/ipfs-peer';
import { creditService } from '@skerry/credit';
import { gatewayService } from '@skerry/gateway';
import { type ConfigSpec, type Environment, type Setting, settingText, variableName } from '@skerry/kit';
import { monitorService } from '@skerry/monitor';
import { schedulerService } from '@skerry/scheduler';
import { statusService } from '@skerry/status';

export interface Daemon {
  readonly name: string;
  readonly summary: string;
  readonly config: { readonly prefix: string; readonly settings: ConfigSpec<unknown>['settings'] };
}

/** In the order in which a network needs them. */
export const DAEMONS: readonly Daemon[] = [
  coreService,
  schedulerService,
  computeService,
  gatewayService,
  monitorService,
  creditService,
  statusService,
  ipfsPeerService,
];

export interface DescribedSetting {
  readonly variable: string;
  /** As the variable has it; empty where there is none. */
  readonly value: string;
  readonly isRequired: boolean;
  readonly meaning: string;
}

/** @param homes where directories are that nobody moved */
export function describeDaemon({ config }: Daemon, homes: Environment): DescribedSetting[] {
  return Object.entries<Setting<unknown>>(config.settings).map(([key, setting]) => ({
    variable: variableName(config.prefix, key),
    value: settingText(typeof setting.fallback === 'function' ? setting.fallback(homes) : setting.fallback),
    isRequired: setting.required,
    meaning: setting.describe,
  }));
}
