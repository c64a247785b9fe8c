#!/bin/sh
# What two ranks make of a link: two network namespaces of this machine, joined by a pair of virtual cards that tc shapes,
# and MPI over TCP between them. Each rank has one processor for all that belongs to it, as two computers of one core
# would. Prints what candor bench measures beside what candor estimate says. As root.
#   sh scripts/measure_link.sh PROGRAM MODEL [NEW_TOKENS]
# Delays want the kernel's netem; without it only rates are shaped, and bench/comm/late_link_bench.cpp makes up the delays.
set -eu
program=$(realpath "$1")
model=$(realpath "$2")
tokens=${3:-32}
folder=$(mktemp -d)
a=candor-a-$$
b=candor-b-$$

end() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT INT TERM

ip netns add "$a"
ip netns add "$b"
ip link add cnd-a netns "$a" type veth peer name cnd-b netns "$b"
for side in a b; do
  eval "space=\$$side"
  number=$([ $side = a ] && echo 1 || echo 2)
  ip -n "$space" addr add "10.123.45.$number/24" dev "cnd-$side"
  ip -n "$space" link set lo up
  ip -n "$space" link set "cnd-$side" up
done

# Where mpirun would use ssh.
cat >"$folder/agent" <<EOF
#!/bin/sh
shift
exec taskset -c 1 ip netns exec $b unshare -u sh -c "hostname candor-b; \$*"
EOF
chmod +x "$folder/agent"

# shape RATE DELAY_US: of both ways out. False where the kernel has no netem.
shape() {
  for side in a b; do
    eval "space=\$$side"
    ip netns exec "$space" tc qdisc del dev "cnd-$side" root 2>/dev/null || true
    if [ "$2" = 0 ]; then
      ip netns exec "$space" tc qdisc add dev "cnd-$side" root tbf rate "$1" burst 256kb latency 50ms || return 1
    else
      ip netns exec "$space" tc qdisc add dev "cnd-$side" root netem delay "$2us" rate "$1" 2>/dev/null || return 1
    fi
  done
}

under_mpi() {
  taskset -c 0 ip netns exec "$a" env CANDOR_RANKS_LINK=mpi mpirun --allow-run-as-root --oversubscribe -q --host 10.123.45.1,10.123.45.2 -n 2 \
    --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.123.45.0/24 \
    --mca oob_tcp_if_include 10.123.45.0/24 "$@"
}

bench="bench generate -m $model --json --prompt 16 --new $tokens -r 3 -t 1"
# shellcheck disable=SC2086
taskset -c 0 "$program" $bench >"$folder/alone"
# compare RATE_GBIT LATENCY_US: the case in $folder/two beside the arithmetic of docs/distributed.md.
compare() {
  python3 - "$folder" "$1" "$2" <<'EOF'
import json, sys
case = lambda name: json.loads(open(f"{sys.argv[1]}/{name}").read())["results"][0]
alone, two = case("alone")["decode_step_ms"], case("two")
rate, latency_us = float(sys.argv[2]) * 1e9 / 8, float(sys.argv[3])
exchange_ms = two["decode_exchanges"] * latency_us / 1e3 + 1e3 * two["decode_sent_bytes"] / rate
print(f"{sys.argv[2]:>3} Gbit/s, {latency_us:4.0f} us: {two['decode_step_ms']:7.2f} ms a token, "
      f"{alone / 2 + exchange_ms:7.2f} by arithmetic ({two['decode_exchanges']:.0f} exchanges; {alone:.2f} ms alone)")
EOF
}

# Microseconds that a few bytes take from one space to the other by TCP: what the link has of itself, and its delay.
cat >"$folder/echo.py" <<'EOF'
import socket, sys, time
if sys.argv[1] == "serve":
    with socket.create_server(("10.123.45.2", 4567)) as listening:
        peer, _ = listening.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := peer.recv(64):
            peer.sendall(data)
else:
    peer = socket.create_connection(("10.123.45.2", 4567))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        peer.sendall(b"x" * 32)
        peer.recv(64)
        times.append(time.perf_counter() - begin)
    print(sorted(times)[len(times) // 2] * 1e6 / 2)
EOF
base_us() {
  ip netns exec "$b" python3 "$folder/echo.py" serve &
  sleep 0.5
  ip netns exec "$a" python3 "$folder/echo.py" ask
  wait $!
}

for rate in 1 10 25; do
  for delay in 0 25 100 500; do
    if ! shape ${rate}gbit $delay; then
      [ $delay = 0 ] || echo "$rate Gbit/s, $delay us: not shaped, this kernel has no netem"
      continue
    fi
    # shellcheck disable=SC2086
    under_mpi "$program" $bench >"$folder/two"
    compare $rate "$(base_us)"
  done
done
