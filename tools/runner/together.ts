import { pathToFileURL } from 'node:url';

/**
 * Runs test files in one process: `node together.ts FILE ...`. All are loaded before the first test of any starts, so that
 * loading disturbs none.
 */
const imports = process.argv.splice(2).map((path) => `import ${JSON.stringify(pathToFileURL(path).href)};`);
const all = `data:text/javascript,${encodeURIComponent(imports.join('\n'))}`;
await import(all);
