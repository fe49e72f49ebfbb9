/**
 * What a process of a test needs of this one's environment when nothing else of it may show: programs are found, and what the run
 * has compiled is not compiled again, which is half of a command's time.
 */
export const bareEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});
