// Installs the packages of the folders that are named: those stand on their own, since few need them or they need a
// newer Node.js. At once, and only where the lock file is another one than that of the last time.
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

async function install(folder) {
  const at = (name) => fileURLToPath(new URL(`../../${folder}/${name}`, import.meta.url));
  const lock = at('package-lock.json');
  const installed = at('node_modules/.installed-lock.json');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return;
  const child = spawn('npm', ['ci', '--prefix', folder], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: 'inherit',
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw new Error(`npm ci --prefix ${folder} ended with ${code}.`);
  copyFileSync(lock, installed);
}

await Promise.all(process.argv.slice(2).map(install));
