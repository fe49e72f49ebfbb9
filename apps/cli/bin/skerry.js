#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { isNodeNewEnough, launch } from './launch.js';

const main = new URL('../src/main.ts', import.meta.url);
if (isNodeNewEnough()) await import(main.href);
else launch([fileURLToPath(main), ...process.argv.slice(2)]);
