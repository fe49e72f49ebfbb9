import packageJson from '../../package.json' with { type: 'json' };

/** One version for the whole repository. */
export const VERSION: string = packageJson.version;
