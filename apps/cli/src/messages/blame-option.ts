import { AppError } from '@skerry/protocol/forms';

/** The options that fill the fields of a content, each with the field's unit. */
type OptionsOf = Readonly<Record<string, string>>;

const COMMON = { name: '--name', description: '--description', memory: '--memory (MiB)' };

export const INSTANCE_OPTIONS: OptionsOf = {
  ...COMMON,
  ...{ image: '--image', cpu: '--cpu', disk: '--disk (GiB)', ssh_key: '--ssh-key', firewall: '--allow' },
};
export const PROGRAM_OPTIONS: OptionsOf = {
  ...COMMON,
  ...{ runtime: '--runtime', timeout: '--timeout (seconds)' },
};

/** `content.firewall.allowedPorts.0` */
const FIELD = /^content\.([a-z_]+)[^ ]*/;

/** Whoever wrote options does not know the fields of a content: what is wrong with a field is said of its option. */
export function blameOption<T>(options: OptionsOf, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_CONTENT') throw error;
    const message = error.message.replace(FIELD, (field, name: string) => options[name] ?? field);
    throw new AppError(error.code, message, { cause: error, details: error.details });
  }
}
