import { mkdir, rmdir, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';
import type { Browser } from 'playwright-core';

/**
 * What the package asks for besides: it is made for functions, which have one process and look at anything. Here a page
 * is to be held to what browsers hold it to.
 */
const UNWANTED = /single-process|disable-web-security|insecure-content|site-isolation|no-zygote/;
/** Paints with a graphics card that is made up: each new context waits for one, and there is none to gain from. */
const GRAPHICS = /in-process-gpu|use-gl|use-angle|swiftshader|gpu-blocklist/;
/**
 * Names that end so are this machine's, as no others in the world are: only to addresses do browsers say over plain
 * HTTP who sends a request. The last one is that of a page whose owner has pointed it here.
 */
const NAMES = '--host-resolver-rules=MAP *.test 127.0.0.1, MAP rebound.example.org 127.0.0.1';
/** A lock that nobody has touched for longer was left by somebody who is gone. */
const LOCK_MS_MAX = 120_000;
const LOOK_MS = 200;

/** A browser, or why there can't be one here. */
export async function launched(): Promise<Browser | string> {
  try {
    return await playwright.launch({
      executablePath: await executable(),
      args: [...chromium.args.filter((arg) => !UNWANTED.test(arg) && !GRAPHICS.test(arg)), '--disable-gpu', NAMES],
      headless: true,
    });
  } catch (error) {
    return `Chromium can't be started here: ${String((error as Error).message).split('\n')[0]}`;
  }
}

/** It is unpacked by the first who wants it. Others wait: half of a program can't be started. */
async function executable(): Promise<string> {
  const lock = path.join(tmpdir(), 'skua-chromium.lock');
  while (!(await taken(lock))) await sleep(LOOK_MS);
  const holding = setInterval(() => {
    void utimes(lock, new Date(), new Date()).catch(() => {});
  }, LOCK_MS_MAX / 12);
  try {
    return await chromium.executablePath();
  } finally {
    clearInterval(holding);
    await rmdir(lock).catch(() => {});
  }
}

async function taken(lock: string): Promise<boolean> {
  try {
    await mkdir(lock);
    return true;
  } catch {
    const made = await stat(lock).catch(() => null);
    if (made !== null && Date.now() - made.mtimeMs > LOCK_MS_MAX) await rmdir(lock).catch(() => {});
    return false;
  }
}
