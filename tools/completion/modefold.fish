# fish completion for modefold
set -l commands run plan verify bench demo info warm help
set -l types f16 bf16 f32 f64 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool
set -l solvers pair map outer inner reference columns ordered rows tiles

complete -c modefold -n "not __fish_seen_subcommand_from $commands" -f
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a run -d 'fold files into files or text'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a plan -d 'say what would run, and why'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a verify -d 'compare every solver with the reference'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a bench -d 'measure, beside the limit of the machine'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a demo -d 'ten folds of large arrays, checked'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a info -d 'what this build has'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -a warm -d 'compile kernels for CUDA devices elsewhere'
complete -c modefold -n "not __fish_seen_subcommand_from $commands" -l version -d 'the version'
complete -c modefold -l help -d 'examples and options'

complete -c modefold -n '__fish_seen_subcommand_from run' -s o -l output -r -d 'where a result goes'
complete -c modefold -n '__fish_seen_subcommand_from run bench' -l json -d 'as JSON'
complete -c modefold -n '__fish_seen_subcommand_from run plan warm' -l set -x -d 'sizes of modes, x=SIZE,...'
complete -c modefold -n '__fish_seen_subcommand_from run plan verify bench warm' -l define -x -d 'an operation of your own'
complete -c modefold -n '__fish_seen_subcommand_from run plan' -l order-as-written -d 'number elements as written'
complete -c modefold -n '__fish_seen_subcommand_from run plan' -l order-contract -d 'the bits of every device'
complete -c modefold -n '__fish_seen_subcommand_from run plan bench' -l dtype -x -a "$types" -d 'types'
complete -c modefold -n '__fish_seen_subcommand_from run plan bench demo' -l threads -x -d 'how many threads'
complete -c modefold -n '__fish_seen_subcommand_from run plan bench' -l solver -x -a "$solvers" -d 'this solver or none'
complete -c modefold -n '__fish_seen_subcommand_from verify' -l solver -x -a "$solvers automatic" -d 'only this one'
complete -c modefold -n '__fish_seen_subcommand_from run plan verify bench info' -l device -x -a 'cpu cpu:1 cpu:2 cuda:0 opencl:0 auto sm:90'
complete -c modefold -n '__fish_seen_subcommand_from verify' -l count -x -d 'random problems'
complete -c modefold -n '__fish_seen_subcommand_from verify' -l seed -x -d 'which ones'
complete -c modefold -n '__fish_seen_subcommand_from verify warm' -l file -r -d 'problems from a file'
complete -c modefold -n '__fish_seen_subcommand_from verify bench' -l seconds -x -d 'how long'
complete -c modefold -n '__fish_seen_subcommand_from bench' -l rows -x -a 'all reduce broadcast operations windows calls'
complete -c modefold -n '__fish_seen_subcommand_from bench' -l limit -x -a 'same read copy' -d 'what to compare with'
complete -c modefold -n '__fish_seen_subcommand_from bench' -l elements -x -d 'of the largest operand'
complete -c modefold -n '__fish_seen_subcommand_from bench' -l bytes -x -d 'of the largest operand'
complete -c modefold -n '__fish_seen_subcommand_from warm' -l arch -x -a 'sm_80 sm_86 sm_89 sm_90 sm_100 sm_120'
complete -c modefold -n '__fish_seen_subcommand_from warm' -l strict -d 'spilled registers are a failure'
