// report_style.hpp: the look and the behaviour of the report: no font, script or picture comes from elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tutti::watch {

// Colours only repeat what a word, a number or a pattern says.
inline constexpr std::string_view report_style = R"CSS(
:root { color-scheme: light dark; --ink:#1b1f24; --soft:#59636e; --paper:#fff; --panel:#f6f8fa; --line:#d1d9e0;
  --accent:#0b63ce; --bad:#b42318; --warn:#8a5a00; --heat:11,99,206; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6edf3; --soft:#9da7b3; --paper:#0d1117; --panel:#161b22;
  --line:#30363d; --accent:#6cb0ff; --bad:#ff8f85; --warn:#e3b341; --heat:88,166,255; } }
* { box-sizing: border-box } body { margin:0; font:16px/1.5 system-ui,sans-serif; color:var(--ink); background:var(--paper) }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1.25rem 4rem } h1 { font-size:1.6rem; margin:.5rem 0 0 }
h2 { font-size:1.2rem; margin:2rem 0 .5rem } p { max-width: 60rem } .soft { color:var(--soft) }
.skip { position:absolute; left:-99rem } .skip:focus { left:1rem; top:.5rem; background:var(--paper); padding:.3rem .6rem }
:focus-visible { outline:3px solid var(--accent); outline-offset:2px }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums; font-size:.92rem }
th,td { text-align:left; padding:.3rem .6rem; border-bottom:1px solid var(--line) } td.n, th.n { text-align:right }
.wide { overflow-x:auto } ul.findings { list-style:none; padding:0 } ul.findings li { background:var(--panel);
  border-left:.35rem solid var(--bad); margin:.5rem 0; padding:.6rem .9rem; overflow-wrap:anywhere }
ul.findings b { text-transform:uppercase; font-size:.78rem; letter-spacing:.05em; color:var(--bad); margin-right:.6rem }
li.slow, li.waiting { border-color:var(--warn) !important } li.slow b, li.waiting b { color:var(--warn) !important }
.heat td { text-align:right; min-width:5rem } .heat th { text-align:right; font-weight:600 }
#timeline { border:1px solid var(--line); background:var(--panel); width:100%; display:block; touch-action:none }
#timeline text { font:12px system-ui,sans-serif; fill:var(--ink) } #timeline .lane { stroke:var(--line) }
#timeline .call { stroke:var(--ink); stroke-width:.6 } #timeline .open { stroke-dasharray:4 2; stroke:var(--bad); stroke-width:2 }
#timeline .picked { stroke:var(--accent); stroke-width:3 } .bar { display:flex; gap:.5rem; flex-wrap:wrap; margin:.5rem 0 }
button { font:inherit; color:inherit; background:var(--panel); border:1px solid var(--line); border-radius:.3rem; padding:.2rem .7rem }
#picked { min-height:3rem; background:var(--panel); padding:.5rem .9rem; margin:.5rem 0; overflow-wrap:anywhere }
.key { display:flex; gap:1rem; flex-wrap:wrap; font-size:.9rem } .key svg { vertical-align:-3px; margin-right:.3rem }
pre { background:var(--panel); padding:.6rem .9rem; overflow-x:auto; margin:.3rem 0 }
)CSS";

// Each verb has a pattern of its own besides its colour. Arrow keys walk along a rank and between ranks, + and - change the scale.
inline constexpr std::string_view report_script = R"JS(
const data = JSON.parse(document.getElementById('data').textContent), svg = document.getElementById('timeline');
const left = 84, row = 34, top0 = 8, ns = 'http://www.w3.org/2000/svg', hues = [212,25,150,280,45,330,190,90,0,250,120,60];
let from = 0, to = Math.max(data.span, 1), picked = [0, 0];
const make = (name, set, into) => { const e = document.createElementNS(ns, name);
  for (const k in set) e.setAttribute(k, set[k]); (into || svg).appendChild(e); return e; };
const time = t => { const a = Math.abs(t); return a < 1e3 ? t.toFixed(0)+' ns' : a < 1e6 ? (t/1e3).toFixed(1)+' µs'
  : a < 1e9 ? (t/1e6).toFixed(1)+' ms' : (t/1e9).toFixed(2)+' s'; };
function pattern(defs, i) {
  const p = make('pattern', {id:'v'+i, width:8, height:8, patternUnits:'userSpaceOnUse',
    patternTransform:'rotate('+[0,45,90,135,20,70][i%6]+')'}, defs);
  make('rect', {width:8, height:8, fill:'hsl('+hues[i%12]+' 65% 62%)'}, p);
  if (i % 4) make('rect', {width:i%4===1?2:i%4===2?4:1, height:i%4===3?1:8, fill:'hsl('+hues[i%12]+' 70% 32%)'}, p);
}
function draw() {
  svg.replaceChildren(); const width = svg.clientWidth || 900, height = top0 + row * data.ranks.length + 26;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`); svg.setAttribute('height', height);
  const defs = make('defs', {}); data.verbs.forEach((_, i) => pattern(defs, i));
  const x = t => left + (t - from) / (to - from) * (width - left - 8);
  data.ranks.forEach((rank, r) => { const y = top0 + r * row;
    make('text', {x:8, y:y+18}).textContent = 'rank ' + rank.rank;
    make('line', {x1:left, x2:width-8, y1:y+24, y2:y+24, class:'lane'});
    rank.calls.forEach((c, i) => { if (c[2] < from || c[1] > to) return;
      const a = Math.max(x(c[1]), left), b = Math.min(x(c[2]), width-8);
      const e = make('rect', {x:a, y:y+4, width:Math.max(b-a, 1), height:18, fill:`url(#v${c[0]})`,
        class:'call'+(c[3]==='under way'?' open':'')+(picked[0]===r&&picked[1]===i?' picked':'')});
      make('title', {}, e).textContent = text(r, i); e.onclick = () => pick(r, i); }); });
  const y = top0 + row * data.ranks.length + 14;
  for (let i = 0; i <= 5; ++i) { const t = from + (to-from)*i/5;
    make('text', {x:x(t), y, 'text-anchor': i===5?'end':i===0?'start':'middle'}).textContent = time(t); }
  for (const m of data.arrows) { if (m[3] < from || m[1] > to) continue;
    make('line', {x1:x(m[1]), x2:x(m[3]), y1:top0+m[0]*row+13, y2:top0+m[2]*row+13, stroke:'var(--accent)'}); }
}
function text(r, i) { const c = data.ranks[r].calls[i]; if (!c) return `rank ${data.ranks[r].rank}: no calls on record`;
  return `rank ${data.ranks[r].rank}: ${c[4]}${c[5] ? ' at '+c[5] : ''}, ${c[3]}, from ${time(c[1])} for ${time(c[2]-c[1])}`
    + (c[6] ? ', ' + c[6] : ''); }
function pick(r, i) { r = Math.min(Math.max(r, 0), data.ranks.length-1); const n = data.ranks[r].calls.length;
  picked = [r, Math.min(Math.max(i, 0), Math.max(n-1, 0))]; const c = data.ranks[r].calls[picked[1]];
  if (c && (c[2] < from || c[1] > to)) { const half = (to-from)/2, m = (c[1]+c[2])/2; from = m-half; to = m+half; }
  document.getElementById('picked').textContent = text(...picked); draw(); }
function scale(f) { const c = data.ranks[picked[0]].calls[picked[1]], m = c ? (c[1]+c[2])/2 : (from+to)/2;
  from = m-(m-from)*f; to = m+(to-m)*f; draw(); }
function near(r) { const c = data.ranks[picked[0]].calls[picked[1]], all = data.ranks[r].calls; if (!c) return 0;
  let best = 0; all.forEach((d, i) => { if (Math.abs(d[1]-c[1]) < Math.abs(all[best][1]-c[1])) best = i; }); return best; }
function key(k) { const [r, i] = picked, n = data.ranks.length;
  if (k === 'ArrowRight') pick(r, i+1); else if (k === 'ArrowLeft') pick(r, i-1);
  else if (k === 'ArrowDown' && r+1 < n) pick(r+1, near(r+1)); else if (k === 'ArrowUp' && r > 0) pick(r-1, near(r-1));
  else if (k === 'Home') pick(r, 0); else if (k === 'End') pick(r, 1e9); else if (k === '+') scale(.5);
  else if (k === '-') scale(2); else if (k === '0') { from = 0; to = Math.max(data.span, 1); draw(); } else return false;
  return true; }
svg.addEventListener('keydown', e => { if (key(e.key)) e.preventDefault(); });
for (const b of document.querySelectorAll('button[data-key]')) b.onclick = () => key(b.dataset.key);
const legend = document.getElementById('key'); data.verbs.forEach((v, i) => { const s = document.createElement('span');
  const k = make('svg', {width:28, height:16}, s), d = make('defs', {}, k); pattern(d, i); d.firstChild.id = 'k'+i;
  make('rect', {width:28, height:16, fill:`url(#k${i})`}, k); s.append(v); legend.append(s); });
window.addEventListener('resize', draw); pick(0, 0);
)JS";

}  // namespace tutti::watch
