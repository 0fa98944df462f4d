"""A plugin as it is written for Stolos."""

import argparse

from kelos.exceptions import CodeError


def build_arg_parser():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--most", type=int, default=100)
    return parser


def main(ns):
    if not ns.table:
        raise CodeError("there is no table")
    print("{} {}: {} of {}, up to {}".format(ns.app_name, ns.job_id, ns.client_id, ns.table, ns.most))
