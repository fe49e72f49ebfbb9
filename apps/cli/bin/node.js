#!/usr/bin/env node
// `node apps/cli/bin/node.js FILE ...` runs FILE with the Node this project needs.
import { launch } from './launch.js';

launch(process.argv.slice(2));
