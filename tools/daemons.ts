import { computeService } from '@skerry/compute';
import { coreService } from '@skerry/core';
import { ipfsPeerService } from '@skerry/core/ipfs-peer';
import { creditService } from '@skerry/credit';
import { gatewayService } from '@skerry/gateway';
import {
  type ConfigSpec,
  type Environment,
  LOG_FORMATS,
  LOG_LEVELS,
  meaningOf,
  type Setting,
  settingText,
  variableName,
} from '@skerry/kit';
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
  /** What it may be, where that is a range or a few words. */
  readonly allowed?: string;
  /** Another name that it has. */
  readonly alias?: string;
}

/** What every daemon understands besides its own settings. */
export const COMMON: readonly DescribedSetting[] = [
  {
    ...{ variable: 'SKERRY_LOG_LEVEL', value: 'info', isRequired: false },
    meaning: 'the least that is logged',
    allowed: LOG_LEVELS.join(', '),
  },
  {
    ...{ variable: 'SKERRY_LOG_FORMAT', value: '', isRequired: false },
    meaning: 'for whom the log is; by default for people on a terminal, and JSON anywhere else',
    allowed: LOG_FORMATS.join(', '),
  },
  {
    ...{ variable: 'NODE_OPTIONS', value: '--max-old-space-size=512', isRequired: false },
    meaning:
      'options of Node; by default none. --max-old-space-size=512 limits the memory for objects to 512 MiB',
  },
];

/** What a setting is for, as plain text. */
export const explainSetting = ({ meaning, allowed, alias }: DescribedSetting): string =>
  [meaningOf({ describe: meaning, ...(allowed !== undefined && { allowed }) }), alias && `also ${alias}`]
    .filter(Boolean)
    .join('; ');

/** @param homes where directories are that nobody moved */
export function describeDaemon({ config }: Daemon, homes: Environment): DescribedSetting[] {
  return Object.entries<Setting<unknown>>(config.settings).map(([key, setting]) => ({
    variable: variableName(config.prefix, key),
    value: settingText(typeof setting.fallback === 'function' ? setting.fallback(homes) : setting.fallback),
    isRequired: setting.required,
    meaning: setting.describe,
    ...(setting.allowed === undefined ? {} : { allowed: setting.allowed }),
    ...(setting.alias === undefined ? {} : { alias: setting.alias }),
  }));
}
